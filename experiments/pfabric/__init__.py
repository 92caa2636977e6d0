"""Alizadeh et al.: pFabric, SIGCOMM 2013, after Deconstructing Datacenter Packet Transport, HotNets 2012."""
