"""[MS-MQQB]: what queue managers say to each other, without I/O."""
