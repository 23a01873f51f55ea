module agenticci

go 1.21
