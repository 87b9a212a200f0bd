# Where MkDocs comes from, which builds the site for a test. Sourced by setup.sh. It has an environment of its own.
site_venv=${XDG_CACHE_HOME:-$HOME/.cache}/ddprun/site-1.6.1

need_site() { need_environment site "MkDocs 1.6.1, 60 MB" "$site_venv" "$setup/site.txt"; }
