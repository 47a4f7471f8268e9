"""Pure rules: no await, clock, random, environment, logging, Temporal or SQL."""
