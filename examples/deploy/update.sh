#!/bin/sh
# An update without a refused connection: update.sh FOLDER, as root. FOLDER has the new version of the agent, with its
# package-lock.json. The units are parley@8080 and parley@8081; nginx sends all requests to one of them.
set -eu
conf=/etc/nginx/conf.d/parley.conf
if grep -q 127.0.0.1:8080 "$conf"; then old=8080 new=8081; else old=8081 new=8080; fi

# Not into the folder that is served: its process still loads parts of what it has installed.
rm -rf "/srv/my-agent/$new"
cp -R "$1" "/srv/my-agent/$new"
(cd "/srv/my-agent/$new" && npm ci --omit=dev)

systemctl start "parley@$new"
tries=60
until curl -fsS -o /dev/null "http://127.0.0.1:$new/health/ready"; do
  tries=$((tries - 1))
  if [ "$tries" = 0 ]; then
    systemctl stop "parley@$new"
    echo "parley@$new did not become ready: see journalctl -u parley@$new. parley@$old goes on serving." >&2
    exit 1
  fi
  sleep 1
done

sed -i "s/127\.0\.0\.1:$old/127.0.0.1:$new/" "$conf"
nginx -t -q
systemctl reload nginx
# nginx's workers of before take no requests from then on.
sleep 2
systemctl enable "parley@$new"
systemctl disable --now "parley@$old"
