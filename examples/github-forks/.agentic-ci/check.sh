# Stands for a formatter or a linter: removes blanks at the ends of lines.
find . -name '*.txt' -exec sed -i 's/[[:blank:]]*$//' {} +
