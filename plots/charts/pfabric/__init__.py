"""Charts of completion times by load and flow size, after pFabric."""
