package checkfile

import (
	"bytes"
	"encoding/binary"
)

// probeSize is the number of bytes at each end of a file that show its format.
const probeSize = 512

// probe returns the format of an image that begins with head, or an empty string. Its magic numbers are those that
// blksum knows.
func probe(head []byte) string {
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case starts("QFI\xfb\x00\x00\x00\x01"):
		return "qcow"
	case starts("QFI\xfb"):
		return "qcow2"
	case starts("KDMV") || starts("COWD") || isDescriptor(head):
		return "vmdk"
	case len(head) >= 68 && string(head[64:68]) == "\x7f\x10\xda\xbe":
		return "vdi"
	case starts("vhdxfile"):
		return "vhdx"
	case starts(vpcMagic):
		return "vpc"
	case starts("QED\x00"):
		return "qed"
	case starts("WithoutFreeSpace") || starts("WithouFreSpacExt"):
		return "parallels"
	case starts("LUKS\xba\xbe"):
		return "luks"
	case starts("Bochs Virtual HD Image"):
		return "bochs"
	case starts("#!/bin/sh\n#V2.0 Format\nmodprobe cloop"):
		return "cloop"
	case starts("EVF\t\r\n\xff\x00"):
		return "ewf"
	case starts("partclone-image"):
		return "partclone"
	case starts("rbd image v2\n"):
		return "rbd"
	case starts("\x3a\xff\x26\xed"):
		return "simg"
	}
	return ""
}

// probeEnds returns the format of content with these first and last bytes, "raw" for a disk. The tail is a sector, or
// empty for shorter content.
func probeEnds(head, tail []byte) string {
	first := probe(head[:min(len(head), probeSize)])
	if len(tail) == probeSize {
		switch {
		case first != "" && first != "vpc" && isFixedVPC(tail):
			// Both ends have a format. It is an image in either case.
			return "vpc"
		case first == "":
			first = probeFooter(tail)
		}
	}
	if first == "" {
		return "raw"
	}
	return first
}

// probeFooter returns the format of an image with this last sector, or an empty string.
func probeFooter(tail []byte) string {
	switch {
	// Virtual PC before 2004 wrote a footer that is one byte shorter.
	case bytes.HasPrefix(tail, []byte(vpcMagic)), bytes.HasPrefix(tail[1:], []byte(vpcMagic)):
		return "vpc"
	case bytes.HasPrefix(tail, []byte("koly")):
		return "dmg"
	}
	return ""
}

// isFixedVPC returns whether a sector is the footer of a fixed vpc image with a valid checksum.
func isFixedVPC(tail []byte) bool {
	sum := uint32(0)
	for i, c := range tail {
		if i < 64 || i >= 68 {
			sum += uint32(c)
		}
	}
	return bytes.HasPrefix(tail, []byte(vpcMagic)) && binary.BigEndian.Uint32(tail[60:]) == 2 &&
		binary.BigEndian.Uint32(tail[64:]) == ^sum
}

// isDescriptor returns whether a text describes a VMware disk: comments and blank lines, then its version.
func isDescriptor(head []byte) bool {
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		line = bytes.Trim(line, asciiSpace)
		for _, title := range []string{"# Disk DescriptorFile", "#DiskDescriptorFile"} {
			if bytes.HasPrefix(line, []byte(title)) {
				return true
			}
		}
		if len(line) > 0 && line[0] != '#' {
			number, ok := bytes.CutPrefix(line, []byte("version="))
			return ok && len(number) == 1 && '1' <= number[0] && number[0] <= '3'
		}
	}
	return false
}

// isTar returns whether head begins with the header of a tar archive: its checksum is valid.
func isTar(head []byte) bool {
	const start, end = 148, 156 // the checksum, which counts as blanks
	if len(head) < 512 {
		return false
	}
	unsigned, signed := int64(0), int64(0)
	for i, c := range head[:512] {
		if start <= i && i < end {
			c = ' '
		}
		unsigned += int64(c)
		// Some old programs added up signed bytes.
		signed += int64(int8(c))
	}
	stated, ok := octal(head[start:end])
	return ok && (stated == unsigned || stated == signed)
}

// octal reads a number in a header of tar.
func octal(field []byte) (number int64, ok bool) {
	if len(bytes.Trim(field, "\x00")) == 0 {
		return 0, true
	}
	digits := bytes.TrimLeft(field, " ")
	rest := bytes.TrimLeft(digits, "01234567")
	digits = digits[:len(digits)-len(rest)]
	for _, c := range digits {
		number = number<<3 | int64(c-'0')
	}
	return number, len(digits) > 0 && len(bytes.Trim(rest, "\x00 ")) == 0
}

// isCompressed returns whether head begins like a file that gzip, xz, zstd, bzip2, lz4 or lzop compressed.
func isCompressed(head []byte) bool {
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case starts("\x1f\x8b\x08"), starts("\xfd7zXZ\x00"), starts("\x28\xb5\x2f\xfd"):
		return true
	case starts("\x04\x22\x4d\x18"), starts("\x02\x21\x4c\x18"), starts("\x89LZO\x00\r\n\x1a\n"):
		return true
	case starts("BZh") && len(head) >= 10:
		// A stream without content has no block.
		block := string(head[4:10])
		return block == "1AY&SY" || block == "\x17rE8P\x90"
	}
	// zstd and lz4 have the same frames to skip.
	return len(head) >= 4 && head[0]>>4 == 5 && string(head[1:4]) == "\x2a\x4d\x18"
}

const vpcMagic = "conectix"
