"""`python -m qm`, where the folder of installed programs is not on the path."""

from qm.commands import qm

if __name__ == "__main__":
    qm(prog_name="qm")
