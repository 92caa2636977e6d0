"""What can be run: one package per paper, post or study.

command.py         the command `refabric` with all experiments
ccp/               Narayan et al., SIGCOMM 2018: an agent sets the windows
coupled/           coupled congestion control of MPTCP
cs244_2013/        the CS244 2013 post on MPTCP
cs244_2017/        the CS244 2017 post on pFabric
dctcp/             Alizadeh et al., DCTCP, SIGCOMM 2010
ims/               Duan, slides of 2015: an IMS under overload
pfabric/           Alizadeh et al., pFabric, SIGCOMM 2013
responsive_mptcp/  Duan, slides of 2015: responsive multipath TCP
sigcomm11/         Raiciu et al., SIGCOMM 2011: MPTCP in data centres
studies/           studies of the emulation itself
validation/        simulator and emulation against arithmetic and theory

A package has the figures, the published numbers and the metrics of its subject.

`registry.py` lists all experiments.

May import `common`, `fabric`, `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis`, `engines` and
`harness`.
"""
