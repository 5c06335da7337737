// Prints records with the emitter of snapshot-metadata-lister. Standard input has an array of records, with the fields
// Type, Capacity and Blocks, an array of offsets and lengths.
package main

import (
	"encoding/json"
	"log"
	"os"

	"github.com/kubernetes-csi/external-snapshot-metadata/pkg/api"
	"github.com/kubernetes-csi/external-snapshot-metadata/pkg/iterator"
)

type record struct {
	Type     int32
	Capacity int64
	Blocks   [][2]int64
}

func main() {
	var records []record
	if err := json.NewDecoder(os.Stdin).Decode(&records); err != nil {
		log.Fatal(err)
	}
	emitter := &iterator.JSONEmitter{Writer: os.Stdout}
	for number, record := range records {
		metadata := iterator.IteratorMetadata{
			BlockMetadataType:   api.BlockMetadataType(record.Type),
			VolumeCapacityBytes: record.Capacity,
		}
		for _, block := range record.Blocks {
			metadata.BlockMetadata = append(metadata.BlockMetadata, &api.BlockMetadata{ByteOffset: block[0], SizeBytes: block[1]})
		}
		if err := emitter.SnapshotMetadataIteratorRecord(number+1, metadata); err != nil {
			log.Fatal(err)
		}
	}
	if err := emitter.SnapshotMetadataIteratorDone(len(records)); err != nil {
		log.Fatal(err)
	}
}
