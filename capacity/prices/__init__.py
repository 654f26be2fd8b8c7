"""What machines cost by Azure's price list: read daily for the fleet's regions and sizes, and kept with a history."""
