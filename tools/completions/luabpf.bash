# SPDX-License-Identifier: BSD-2-Clause
# bash completion for luabpf
_luabpf() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            COMPREPLY=($(compgen -c -f -- "$cur"))
            return
        fi
    done
    if [[ $prev == = ]]; then # --by=WHAT is three words
        prev=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $cur == = ]]; then
        cur=
    fi
    case $prev in
    --by) COMPREPLY=($(compgen -W "pid comm exe cgroup container vm thread coroutine zone" -- "$cur")) ;;
    -p | --pid) COMPREPLY=($(compgen -W "$(pgrep -x 'luajit|lua(5\.[1-5])?|nginx|openresty|tarantool|nvim|haproxy|redis-server' 2>/dev/null)" -- "$cur")) ;;
    -f | --format) COMPREPLY=($(compgen -W "pprof folded" -- "$cur")) ;;
    -o | --output | --stats | --metrics | --raw | --from | --annotate | --lcov | --cobertura | --chrome) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --user | --source-user) COMPREPLY=($(compgen -u -- "$cur")) ;;
    --exe | --cgroup) COMPREPLY=($(compgen -f -- "$cur")) ;;
    --comm | -F | --frequency | -d | --duration | --every | --max-lost | --fail-under | --max-slowdown) ;;
    *)
        local words="-p --children --no-follow --all --exe --comm --cgroup --user --wait -jp -jp= --by= --zone-from= -o -f -F -d --every --stats --metrics --max-lost -v -q --help --version --"
        [[ ${COMP_WORDS[1]} == report ]] && words="-jp -jp= --by= -o -f --source-user -v -q --help"
        [[ ${COMP_WORDS[1]} == doctor ]] && words="-p --help"
        [[ ${COMP_WORDS[1]} == ps ]] && words="--json --exe --comm --cgroup --user --help"
        [[ ${COMP_WORDS[1]} == traces ]] && words="-p -d -F --annotate --json --help --"
        [[ ${COMP_WORDS[1]} == count ]] && words="-p -d --max-slowdown --json -o -q --help --"
        [[ ${COMP_WORDS[1]} == trace ]] && words="--raw --from --annotate --lcov --cobertura --chrome --fail-under --source-user -o -q --help --"
        ((COMP_CWORD == 1)) && words+=" record report doctor ps count trace traces help"
        if [[ $cur == -* || $COMP_CWORD == 1 || ${COMP_WORDS[1]} =~ ^(doctor|ps|count|traces)$ ]]; then
            COMPREPLY=($(compgen -W "$words" -- "$cur"))
        else
            COMPREPLY=($(compgen -f -- "$cur"))
        fi
        ;;
    esac
}
complete -F _luabpf luabpf
