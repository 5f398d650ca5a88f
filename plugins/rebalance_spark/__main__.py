"""``rebalance-lab`` as a file that spark-submit can run."""

from coordinator_core.cli.main import run

if __name__ == "__main__":
    run()
