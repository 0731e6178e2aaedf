ALTER TABLE "access_tokens" ADD COLUMN "maker_id" uuid NULL;
CREATE INDEX "accesstoken_maker_id" ON "access_tokens" ("maker_id");
ALTER TABLE "keypairs" ADD COLUMN "expires_at" timestamptz NULL, ADD COLUMN "maker_id" uuid NULL;
CREATE INDEX "keypair_maker_id" ON "keypairs" ("maker_id");
ALTER TABLE "ssh_keys" ADD COLUMN "expires_at" timestamptz NULL, ADD COLUMN "maker_id" uuid NULL;
CREATE INDEX "sshkey_maker_id" ON "ssh_keys" ("maker_id");
ALTER TABLE "object_storages" ADD COLUMN "verified_at" timestamptz NULL;
ALTER TABLE "sessions" ADD COLUMN "secrets_sealed" bytea NULL;
