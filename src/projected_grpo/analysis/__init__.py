"""Statistics, tables, figures and the HTML report: from run folders to what people read. Knows no torch."""
