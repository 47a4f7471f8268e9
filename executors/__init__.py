"""The parts that know what a payload means: validate, prepare, launch."""
