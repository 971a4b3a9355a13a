# For other scripts here: the files as they stand below a prefix such as /usr or /opt/unfuse.

# Arguments: the folder that contains unfuse and libunfuse.so, and the prefix.
tree() {
    local built=$1 prefix=$2
    install -D -m 755 "$built/unfuse" "$prefix/bin/unfuse"
    install -D -m 755 "$built/libunfuse.so" "$prefix/lib/unfuse/libunfuse.so"
    local share="$prefix/share"
    mkdir -p "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d" "$share/man"
    "$built/unfuse" completions bash >"$share/bash-completion/completions/unfuse"
    "$built/unfuse" completions zsh >"$share/zsh/site-functions/_unfuse"
    "$built/unfuse" completions fish >"$share/fish/vendor_completions.d/unfuse.fish"
    "$built/unfuse" man "$share/man/man1" 2>/dev/null
}
