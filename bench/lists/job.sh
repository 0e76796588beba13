# job.sh KIND NAME: a step of a package. `test 07` fails at its first try.
echo "$1 $2" >>calls
if [ "$1 $2" = "test 07" ] && [ "$(grep -cx "test 07" calls)" -eq 1 ]; then exit 1; fi
