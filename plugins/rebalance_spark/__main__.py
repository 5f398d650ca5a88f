"""The command ``rebalance-lab`` as a file for spark-submit."""

from rebalance_lab.cli.main import run

if __name__ == "__main__":
    run()
