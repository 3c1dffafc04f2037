-- 0001_create_queue: the tables of version 1. Until its release they are the files in tables/; tools/freeze.py then
-- puts their text here.
\ir ../tables
