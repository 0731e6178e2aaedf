import { graphql } from "../../api/graphql";

/** Whether and how people can sign up. Works without a login. */
export const SignUpOfferQuery = graphql(`query SignUpOffer { signUpOffer { mode named } }`);
