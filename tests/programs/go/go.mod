module scenario

go 1.21

require agenticci v0.0.0
