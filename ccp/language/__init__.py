"""The language of datapath programs: two notations, one instruction set."""
