SELECT
  "pairs"."item",
  COUNT(*) AS "persons"
FROM (
  SELECT DISTINCT
    "events"."place" COLLATE C AS "item",
    "events"."user" COLLATE C AS "person"
  FROM READ_CSV(
    '/data/events.csv',
    auto_detect = FALSE,
    header = TRUE,
    delim = ',',
    quote = '"',
    escape = '"',
    compression = 'uncompressed',
    columns = {'user': 'VARCHAR', 'place': 'VARCHAR'}
  ) AS "events"
  WHERE
    NOT "events"."place" IS NULL AND NOT "events"."user" IS NULL
) AS "pairs"
GROUP BY
  "pairs"."item"
ORDER BY
  "persons" DESC,
  "pairs"."item" ASC
LIMIT 201
