"""The paper's section on Amazon EC2: sequential transfers in a cloud shared with other tenants."""
