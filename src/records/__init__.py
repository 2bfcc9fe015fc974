"""Types that cross between packages, failures, and files that survive a crash; imports no other package."""
