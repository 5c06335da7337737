package lima_test

import (
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/blkhash/blkhash/go"
	"github.com/blkhash/blkhash/go/examples/lima"
)

func TestDownload(t *testing.T) {
	content := make([]byte, 3<<20)
	copy(content[1<<20:], "a disk")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(content)
	}))
	defer server.Close()
	h, err := blkhash.New(blkhash.Parameters{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(content); err != nil {
		t.Fatal(err)
	}
	right := digest.Digest("sha256:" + hex.EncodeToString(h.Sum(nil)))

	local := filepath.Join(t.TempDir(), "disk.img")
	if _, err := lima.Download(t.Context(), local, server.URL+"/disk.img", right); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(local); err != nil {
		t.Fatal(err)
	}
	content[1<<20]++
	if _, err := lima.Download(t.Context(), local, server.URL+"/disk.img", right); !errors.Is(err, lima.ErrMismatch) {
		t.Error(err)
	}
	if _, err := os.Stat(local); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the image that does not match is still there: %v", err)
	}
}
