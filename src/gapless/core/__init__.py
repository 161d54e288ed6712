"""Records and protocols that every other room speaks in. Imports numpy only."""
