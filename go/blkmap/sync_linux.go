package blkmap

import (
	"os"
	"syscall"
)

// syncData brings the content of a file to the disk. The time of the last change may not be written.
func syncData(f *os.File) error {
	connection, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var synced error
	err = connection.Control(func(fd uintptr) {
		for {
			if synced = syscall.Fdatasync(int(fd)); synced != syscall.EINTR {
				return
			}
		}
	})
	if synced != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: synced}
	}
	return err
}
