package image

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// DataDigest identifies a raw image by its data alone, so that zeros cost
// nothing: of two images of different content it differs, however they were
// packed and wherever a file of theirs has holes. It is the SHA-256, in hex,
// of these in a row:
//
//	"ironlot data 1\n"
//	for each block of Block bytes that is not all zeros, in order:
//	    its offset in the image, 8 bytes, big-endian; the block
//	the image's size, 8 bytes, big-endian
//
// The last block of an image may be a short one.
type DataDigest struct{ sum hash.Hash }

// NewDataDigest is the digest of an image of which nothing is known yet.
func NewDataDigest() *DataDigest {
	d := &DataDigest{sha256.New()}
	d.sum.Write([]byte("ironlot data 1\n"))
	return d
}

// Add takes the next piece of the image, p being what is at off: a multiple of
// Block. What was between the last piece and this one is zeros. Only the
// last piece may be no multiple of Block long.
func (d *DataDigest) Add(p []byte, off int64) {
	_ = eachData(p, func(start, end int) error { // which gives no error
		for ; start < end; start += Block {
			d.number(off + int64(start))
			d.sum.Write(p[start:min(start+Block, end)])
		}
		return nil
	})
}

func (d *DataDigest) number(n int64) {
	d.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// Sum is the digest of an image of so many bytes; nothing is added afterwards.
func (d *DataDigest) Sum(size int64) string {
	d.number(size)
	return hex.EncodeToString(d.sum.Sum(nil))
}
