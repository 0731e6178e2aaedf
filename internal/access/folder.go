package access

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// FolderPermission is what a folder is shared for: with one user, or with the
// members of the project that it belongs to.
type FolderPermission string

// The permissions on folders. Each has those before it.
const (
	ReadOnly        FolderPermission = "read_only"         // see and read its files
	ReadWrite       FolderPermission = "read_write"        // make, change and delete files
	ReadWriteDelete FolderPermission = "read_write_delete" // and put the folder itself into the trash
)

// FolderPermissions lists all, the least first.
func FolderPermissions() []FolderPermission {
	return []FolderPermission{ReadOnly, ReadWrite, ReadWriteDelete}
}

// Values are those of the column, for ent.
func (FolderPermission) Values() []string {
	return []string{string(ReadOnly), string(ReadWrite), string(ReadWriteDelete)}
}

// Relation is how who has a permission stands to the folder; Anyone for none.
func (p FolderPermission) Relation() Relation {
	switch p {
	case ReadOnly:
		return Reader
	case ReadWrite:
		return Writer
	case ReadWriteDelete:
		return Keeper
	}
	return Anyone
}

// MarshalGQL writes the permission as GraphQL has it.
func (p FolderPermission) MarshalGQL(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(string(p))) }

// UnmarshalGQL reads a permission.
func (p *FolderPermission) UnmarshalGQL(v any) error {
	s, _ := v.(string)
	if !slices.Contains(FolderPermissions(), FolderPermission(s)) {
		return fmt.Errorf("%v is not a permission on a folder", v)
	}
	*p = FolderPermission(s)
	return nil
}
