"""Real Linux in virtual time: one User-Mode Linux guest per point.

May import `common`, `topos`, `model`, `engines.core_setup`, `engines.engine`, `engines.kernel_hosts`,
`engines.provenance` and `engines.wire`.
"""
