"""Charts and tables of the pages, made from the JSON in results/ and from nothing else."""
