import { t } from "../../i18n";

export function Crumbs({ name, path, onOpen }: { name: string; path: string; onOpen: (path: string) => void }) {
  const parts = path ? path.split("/") : [];
  return (
    <nav aria-label={t("Path in the folder")}>
      <ol className="crumbs">
        <li>
          {parts.length > 0 ? (
            <button type="button" className="linkish" onClick={() => onOpen("")}>
              {name}
            </button>
          ) : (
            <b>{name}</b>
          )}
        </li>
        {parts.map((part, i) => (
          <li key={parts.slice(0, i + 1).join("/")}>
            <span className="dim">/ </span>
            {i === parts.length - 1 ? (
              <b aria-current="location">{part}</b>
            ) : (
              <button type="button" className="linkish" onClick={() => onOpen(parts.slice(0, i + 1).join("/"))}>
                {part}
              </button>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}
