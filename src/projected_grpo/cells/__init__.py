"""questions.yaml + config -> cells: typed settings, checked before any job starts."""
