// Command qcow2sum prints checksums of images as blksum does, with the image reader of Lima.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/examples/qcow2"
)

func main() {
	status := 0
	for _, name := range os.Args[1:] {
		if err := print(name); err != nil {
			fmt.Fprintln(os.Stderr, "qcow2sum:", err)
			status = 1
		}
	}
	os.Exit(status)
}

func print(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum, err := qcow2.Sum(context.Background(), f, blkhash.Parameters{})
	if err != nil {
		return err
	}
	fmt.Printf("%x  %s\n", sum, name)
	return nil
}
