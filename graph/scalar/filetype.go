package scalar

import (
	"fmt"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"github.com/berthhq/berth/storage/storagepb"
)

// MarshalFileType writes the kind of a directory entry.
func MarshalFileType(t storagepb.FileInfo_Type) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(t.String())) })
}

// UnmarshalFileType reads the kind of a directory entry.
func UnmarshalFileType(v any) (storagepb.FileInfo_Type, error) {
	s, _ := v.(string)
	if t, ok := storagepb.FileInfo_Type_value[s]; ok {
		return storagepb.FileInfo_Type(t), nil
	}
	return 0, fmt.Errorf("%v is not a file type", v)
}
