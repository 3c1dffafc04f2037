-- save_settings: remember the settings that installing changes, for the rest of the caller's transaction.
select
  set_config('lonnymq.search_path', current_setting('search_path'), true),
  set_config('lonnymq.client_min_messages', current_setting('client_min_messages'), true),
  set_config('lonnymq.check_function_bodies', current_setting('check_function_bodies'), true);
