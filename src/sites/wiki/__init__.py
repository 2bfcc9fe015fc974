"""The encyclopedia: short articles about the map's towns and places, their people, and the shop's materials."""
