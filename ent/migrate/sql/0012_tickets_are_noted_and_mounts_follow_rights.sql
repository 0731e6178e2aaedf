ALTER TABLE "session_mounts" ADD COLUMN "read_only_wanted" boolean NOT NULL DEFAULT false, ADD COLUMN "settled" boolean NOT NULL DEFAULT true, ADD COLUMN "revoked_at" timestamptz NULL;
CREATE TABLE "vfolder_tickets" ("id" uuid NOT NULL, "user_id" uuid NOT NULL, "vfolder_id" uuid NOT NULL, "write" boolean NOT NULL, "issued_at" timestamptz NOT NULL, "expires_at" timestamptz NOT NULL, "revoked_at" timestamptz NULL, PRIMARY KEY ("id"));
CREATE UNIQUE INDEX "vfolderticket_user_id_vfolder_id_write" ON "vfolder_tickets" ("user_id", "vfolder_id", "write");
CREATE INDEX "vfolderticket_expires_at" ON "vfolder_tickets" ("expires_at");
