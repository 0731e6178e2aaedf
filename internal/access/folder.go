package access

// FolderPermission is the permission of a share: for one user, or for the members of the
// folder's project.
type FolderPermission string

// The permissions on folders. Each includes the previous ones.
const (
	ReadOnly        FolderPermission = "read_only"         // see and read its files
	ReadWrite       FolderPermission = "read_write"        // create, change and delete files
	ReadWriteDelete FolderPermission = "read_write_delete" // also move the folder itself to the trash
)

// FolderPermissions lists all, the weakest first.
func FolderPermissions() []FolderPermission {
	return []FolderPermission{ReadOnly, ReadWrite, ReadWriteDelete}
}

// Values are the values of the column, for ent.
func (FolderPermission) Values() []string {
	return []string{string(ReadOnly), string(ReadWrite), string(ReadWriteDelete)}
}

// Relation returns the relation of a user with the permission to the folder; Anyone for none.
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
