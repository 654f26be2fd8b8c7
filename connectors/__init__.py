"""One file per outside system, the only importer of its SDK; typed errors."""
