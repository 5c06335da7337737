// Package stamp compares states of a file by its size and time stamps.
package stamp

import "os"

// Same returns whether two descriptions are of the same file in the same state. It compares the times of the last change of
// content and, where the system has it, of the inode, which programs cannot set.
func Same(before, after os.FileInfo) bool {
	return os.SameFile(before, after) && before.Size() == after.Size() && before.ModTime().Equal(after.ModTime()) &&
		changed(before) == changed(after)
}
