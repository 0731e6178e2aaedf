ALTER TABLE "cluster_identities" ADD COLUMN "led_at" timestamptz NULL, ADD COLUMN "recovery_since" timestamptz NULL, ADD COLUMN "recovery_reason" character varying NOT NULL DEFAULT '';
