# For other scripts here: the files as they stand below a prefix such as /usr or /opt/unfuse.

# Arguments: the folder that contains unfuse and libunfuse.so, and the prefix. If that unfuse is for another machine, RUNS is
# one that runs here: completions and manual pages are the same on all machines.
tree() {
    local built=$1 prefix=$2
    local runs="${RUNS:-$built/unfuse}"
    install -D -m 755 "$built/unfuse" "$prefix/bin/unfuse"
    install -D -m 755 "$built/libunfuse.so" "$prefix/lib/unfuse/libunfuse.so"
    local share="$prefix/share"
    mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d" "$share/man"
    "$runs" completions bash >"$share/bash-completion/completions/unfuse"
    "$runs" completions zsh >"$share/zsh/site-functions/_unfuse"
    "$runs" completions fish >"$share/fish/vendor_completions.d/unfuse.fish"
    "$runs" man "$share/man/man1" 2>/dev/null
}
