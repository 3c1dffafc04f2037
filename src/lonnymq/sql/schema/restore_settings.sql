-- restore_settings: give the caller's transaction its own settings back.
select
  set_config('search_path', current_setting('lonnymq.search_path'), true),
  set_config('client_min_messages', current_setting('lonnymq.client_min_messages'), true),
  set_config('check_function_bodies', current_setting('lonnymq.check_function_bodies'), true);
