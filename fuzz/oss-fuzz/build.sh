#!/bin/bash -eu
exec "$SRC/blkhash/fuzz/build"
