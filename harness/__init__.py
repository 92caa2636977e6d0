"""How experiments are run: command line, plan, execution, results, claims, report, comparison."""
