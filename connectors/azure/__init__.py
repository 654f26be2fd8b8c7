"""Azure Resource Manager and the retail prices, each library of Microsoft's in one file."""
