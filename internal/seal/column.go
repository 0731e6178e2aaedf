package seal

// Purpose is the purpose of an encrypted value. The value can be decrypted only for the same
// purpose.
type Purpose string

// The purposes.
const (
	KeypairSecret    Purpose = "keypair secret"
	SecondFactor     Purpose = "totp"
	RegistryPassword Purpose = "registry password"
	MirrorLogins     Purpose = "mirror logins"
	ProviderSecret   Purpose = "identity provider"
	StorageSecret    Purpose = "object storage"
	Canary           Purpose = "canary"      // with which a manager checks that it has the cluster's keys
	LoginState       Purpose = "login state" // of a browser at an identity provider, for minutes; in no table
	SessionSecrets   Purpose = "session"     // its environment and bootstrap script
	TemplateSecrets  Purpose = "session template"
	BuildInput       Purpose = "image build" // its files, arguments and secrets
	RevisionSecrets  Purpose = "deployment revision"
	EndpointKey      Purpose = "chat endpoint"
	ChannelAddress   Purpose = "notice channel address"
	ChannelSecret    Purpose = "notice channel secret"
	KernelSecrets    Purpose = "kernel"       // the same on the disk of an agent, encrypted with its own key ring; in no table
	KnownDevice      Purpose = "known device" // a cookie with earlier users of the browser; in no table
	AppEntry         Purpose = "app entry"    // a cookie with the permission to open an app; in no table
)

// Column is a table column with encrypted values; the table has an id.
type Column struct {
	Table, Name string
	Purpose     Purpose
}

// Columns are all columns with encrypted values; without a value, they are empty or NULL.
func Columns() []Column {
	return []Column{
		{"keypairs", "secret_sealed", KeypairSecret},
		{"users", "totp_sealed", SecondFactor},
		{"registries", "password_sealed", RegistryPassword},
		{"registries", "mirrors_sealed", MirrorLogins},
		{"identity_providers", "client_secret_sealed", ProviderSecret},
		{"object_storages", "secret_sealed", StorageSecret},
		{"cluster_identities", "canary_sealed", Canary},
		{"sessions", "secrets_sealed", SessionSecrets},
		{"session_templates", "secrets_sealed", TemplateSecrets},
		{"image_builds", "input_sealed", BuildInput},
		{"deployment_revisions", "secrets_sealed", RevisionSecrets},
		{"chat_endpoints", "key_sealed", EndpointKey},
		{"notice_channels", "address_sealed", ChannelAddress},
		{"notice_channels", "secret_sealed", ChannelSecret},
	}
}
