"""See a point at work: one page for running and for finished points.

scene.py    what is shown of a point: its network, its flows and their paths
feed.py     what a running point writes for the page
stored.py   the same of a stored point, from its samples
page.py     the page with everything in it, for reports
server.py   the page served on this machine while runs go on
points.py   the running and stored points of a folder
templates/  its HTML, CSS and scripts

May import `common`, `topos`, `controllers`, `workloads`, `model`, `analysis`, `engines`, `harness.points` and
`harness.results`.
"""
