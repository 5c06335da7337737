// With the name of the module whose emitter it compiles, so that the imports in that stay as they are.
module github.com/kubernetes-csi/external-snapshot-metadata

go 1.24

require google.golang.org/protobuf v1.36.11
