package scalar

import (
	"fmt"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"github.com/berthhq/berth/storage/storagepb"
)

var fileTypes = map[storagepb.FileInfo_Type]string{
	storagepb.FileInfo_FILE:      "file",
	storagepb.FileInfo_DIRECTORY: "directory",
	storagepb.FileInfo_SYMLINK:   "symlink",
	storagepb.FileInfo_OTHER:     "other",
}

// MarshalFileType writes the kind of a directory entry.
func MarshalFileType(t storagepb.FileInfo_Type) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(fileTypes[t])) })
}

// UnmarshalFileType reads the kind of a directory entry.
func UnmarshalFileType(v any) (storagepb.FileInfo_Type, error) {
	for t, name := range fileTypes {
		if name == v {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%v is not a file type", v)
}
