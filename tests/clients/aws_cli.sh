#!/bin/sh
# The AWS command line interface. Argument: the endpoint.
set -eu
export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any AWS_DEFAULT_REGION=us-east-1 AWS_PAGER=
table="cli-$$-$(date +%s)"
ddb() { aws dynamodb "$@" --endpoint-url "$url"; }
url=$1

ddb create-table --table-name "$table" --billing-mode PAY_PER_REQUEST \
    --attribute-definitions AttributeName=p,AttributeType=S --key-schema AttributeName=p,KeyType=HASH >/dev/null
ddb wait table-exists --table-name "$table"
ddb put-item --table-name "$table" --item '{"p": {"S": "x"}, "n": {"N": "12.50"}}'
shown=$(ddb get-item --table-name "$table" --key '{"p": {"S": "x"}}' --consistent-read --query Item.n.N --output text)
[ "$shown" = 12.5 ]
ddb update-item --table-name "$table" --key '{"p": {"S": "x"}}' --update-expression 'SET n = n + :n' \
    --expression-attribute-values '{":n": {"N": "1"}}' --return-values UPDATED_NEW | grep -q 13.5
ddb scan --table-name "$table" --max-items 1 --query Count --output text | grep -q 1
if ddb put-item --table-name "$table" --item '{"p": {"S": "x"}}' --condition-expression 'attribute_not_exists(p)' 2>errors.txt; then
    echo "the condition held" >&2
    exit 1
fi
grep -q ConditionalCheckFailedException errors.txt
ddb delete-table --table-name "$table" --query TableDescription.TableStatus --output text | grep -q DELETING
ddb wait table-not-exists --table-name "$table"
